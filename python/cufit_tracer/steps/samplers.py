# SPDX-License-Identifier: Apache-2.0
"""Data sets and samplers over and over: enough for the steps at a greater batch size."""


def length(of):
    try:
        return len(of)
    except TypeError:  # some have the method and no length
        return 0


def repeated_class(data):
    class Repeated(data.Dataset):
        """A data set over and over."""

        def __init__(self, dataset, length):
            self._dataset, self._length = dataset, length

        def __len__(self):
            return self._length

        def __getitem__(self, index):
            return self._dataset[index % len(self._dataset)]

        def __getattr__(self, name):
            if name in ("_dataset", "__getitems__"):
                raise AttributeError(name)
            return getattr(self._dataset, name)

    return Repeated


class Cycled:
    """A sampler over and over, which goes by the length that the data set had when it was made.
    Passes for one of its kind."""

    def __init__(self, sampler, times, between=None):
        self._sampler, self._times, self._between = sampler, times, between

    @property
    def __class__(self):  # type: ignore[misc]
        return type(self._sampler)

    def __len__(self):
        return self._times * len(self._sampler)

    def __iter__(self):
        for time in range(self._times):
            if time and self._between:
                self._between()
            yield from self._sampler

    def __getattr__(self, name):
        if name in ("_sampler", "_times", "_between"):
            raise AttributeError(name)
        return getattr(self._sampler, name)
