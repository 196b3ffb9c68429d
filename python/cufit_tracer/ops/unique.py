# SPDX-License-Identifier: Apache-2.0
"""Values that differ: how many there are, nothing but values tells."""

# The values that differ, where they came from and how many there are of each, if all differ. By
# operator: where it is told whether the last two are wanted.
UNIQUE = {"aten::_unique2": (2, 3), "aten::unique_dim": (3, 4), "aten::unique_consecutive": (1, 2)}


def all_distinct(torch, name, x, *args, **kwargs):
    given = (x, *args)
    flat = name != "aten::unique_dim" and not (
        name == "aten::unique_consecutive" and len(given) > 3 and given[3] is not None
    )
    count = x.numel() if flat else x.shape[given[1] if name == "aten::unique_dim" else given[3]]
    wanted = [
        kwargs.get(key, False) or len(given) > at and bool(given[at])
        for at, key in zip(UNIQUE[name], ("return_inverse", "return_counts"))
    ]
    values = x.new_empty(count if flat else x.shape)
    places = x.new_empty((x.shape if flat else (count,)) if wanted[0] else 0, dtype=torch.int64)
    counts = x.new_empty(count if wanted[1] else 0, dtype=torch.int64)
    return values, places, counts
