"""Skills: `skill.py` reads a SKILL.md, `folders.py` its folder, `packed.py` an archive; `catalogue.py` knows all."""
