"""Files that people send and are sent: what they are, how they are fetched and kept, what of them a
model is shown. A message never holds a content, only a reference to a kept file (`references`)."""
