"""What gcloud's files say of the person who runs the command: the project and the account. Nothing is called."""
