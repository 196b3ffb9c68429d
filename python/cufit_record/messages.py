# SPDX-License-Identifier: Apache-2.0
"""What is said on stderr."""

from cufit_say import Speaker, said

__all__ = ["said", "say"]
say = Speaker("CUFIT_RECORD_SAY_").say
