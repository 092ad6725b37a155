"""The part of a life with the bot that memory keeps."""
