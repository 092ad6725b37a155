"""Files that people and models send: their kinds, how they are fetched and kept, and how a model is shown them. A
message never holds a content, only a reference to a kept file (`references`)."""
