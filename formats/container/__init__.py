"""The graph's own file: its layout, how it is opened, checked and written."""
