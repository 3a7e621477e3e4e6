"""Plans of other experiment tools: their tasks, studies, candidates and ledgers, read as text and never trusted."""
