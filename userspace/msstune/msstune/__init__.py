# SPDX-License-Identifier: GPL-2.0
"""msstune: what limits TCP here, and settings that can be undone."""

__version__ = "0.1.0"
