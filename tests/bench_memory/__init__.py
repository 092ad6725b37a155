"""What memory keeps of a life with the bot."""
