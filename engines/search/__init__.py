"""The search engine: sees spaces, trials and objectives, never a graph; returns designs."""
