# SPDX-License-Identifier: Apache-2.0
"""Stands for xformers without its compiled part."""
