"""What a run says to people: the terminal's table, live progress and the self-contained HTML report."""
