"""The face for agents that speak MCP: `rlx mcp`, over stdio; the only place that imports the SDK (extra `mcp`)."""
