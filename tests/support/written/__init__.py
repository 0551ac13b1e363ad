"""What tests compare with, and write anew when it changes on purpose."""
