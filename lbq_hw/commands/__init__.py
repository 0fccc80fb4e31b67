"""Shared by the commands of `lbq`: their list, arguments, endings, progress bars and notes."""
