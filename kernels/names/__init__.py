"""Names of vertices: parsed, numbered, sorted, merged, stored front-coded, and found again."""
