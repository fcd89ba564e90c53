"""What a run kept: finding its episodes by name, playing them again, grading them again."""
