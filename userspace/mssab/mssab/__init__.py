# SPDX-License-Identifier: GPL-2.0
"""mssab: A/B experiments on TCP windows."""

__version__ = "0.1.0"
