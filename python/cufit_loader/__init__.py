# SPDX-License-Identifier: Apache-2.0
"""`cufit bench loader`: times the DataLoader of a training program alone and its step alone,
without an edit of the program. Starts as a sitecustomize (src/host/python/loader_run.h)."""
