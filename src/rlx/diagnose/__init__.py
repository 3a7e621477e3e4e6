"""WHY? Findings from series, from probes of an environment and from reward terms; the judgement is pure."""
