"""`python -m snoozing_env` is `snooze`."""

from snoozing_env.cli import main

if __name__ == "__main__":
    main()
