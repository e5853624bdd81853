"""Figures of the report: matplotlib drawn into SVG whose colours are CSS variables of the page."""
