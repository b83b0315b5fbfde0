"""What version 1 takes and gives, one module per subject; serializers validate and show, they never save."""
