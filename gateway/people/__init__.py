"""The people who may talk, and those who decide.

people        the parts below together, as the rooms above hold them
access        what config.yaml says of people
pairing       strangers who ask to be let in (welcome: what they and admins are told)
approvals     questions that a person decides
reminders     what people want to be told later (firing: they are due)
"""
