"""What the commands of `lbq` share: arguments, endings, notes on progress; and their list."""
