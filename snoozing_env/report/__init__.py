"""What a run did, for people: the run log, the HTML report, the terminal table and progress."""
