"""What tests use: servers, databases, a cast of people, samples."""
