"""What a word is, in many languages: where it begins and ends, its stem, its kin, slips of the pen, dates."""
