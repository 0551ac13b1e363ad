"""What is near: neighbourhoods of vertices, and the subgraphs that vertices induce."""
