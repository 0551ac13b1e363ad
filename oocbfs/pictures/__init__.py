"""Pictures and pages without a library: SVG in light and in dark, HTML that needs no other file."""
