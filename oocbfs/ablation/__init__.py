"""Methods side by side on one graph: runs, the table, pictures and the page."""
