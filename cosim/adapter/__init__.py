"""Bridges to other tools and formats. Everything here is imported on use only."""
