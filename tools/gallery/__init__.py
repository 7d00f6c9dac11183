"""The gallery: five public tables from the question of their holder to what an analyst may rely on.

python -m tools.gallery --data FOLDER    fit every table anew; write pictures, docs/gallery/results.json and the pages
python -m tools.gallery                  write the pages from that file, and draw what others have measured
python -m tools.gallery --check          exit 1 if a page does not show what the file says
"""
