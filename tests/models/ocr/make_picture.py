"""Prints two lines in DejaVu Sans (Debian's fonts-dejavu-core), the second upside down, into picture.pgm.

    /usr/bin/python3 make_picture.py        (python3-pil)

The picture is our own; what the tests compare is made by printing it, not by reading it.
"""
import pathlib

from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
LINES = ["Graphs 4127", "Turned around"]


def main():
    picture = Image.new("L", (352, 160), 236)
    font = ImageFont.truetype(FONT, 36)
    for number, text in enumerate(LINES):
        line = Image.new("L", (picture.width, 64), 236)
        ImageDraw.Draw(line).text((36, 10), text, font=font, fill=24)
        picture.paste(line.rotate(180) if number == 1 else line, (0, 10 + 70 * number))
    picture.save(pathlib.Path(__file__).parent / "picture.pgm")


if __name__ == "__main__":
    main()
