"""tools/check-packages finds packages without a row in docs/dependencies.md, rows without a package, and duplicates."""
import unittest

from check_case import CheckCase

PACKAGES = "# build\ng++\ncmake  # 3.25\n\nlibz-dev\n"
PAGE = ("# Dependencies\n\n| package | version |\n|---|---|\n| g++ (libgomp), cmake | 12 |\n| libz-dev | 1 |\n"
        "\n## Oracles\n\n| package | version |\n|---|---|\n| torch | 2 |\n")


class CheckPackages(CheckCase):
    tool = "check-packages"
    success = "each with its row"

    def said(self, packages=PACKAGES, page=PAGE):
        return self.output_for({"packages.txt": packages, "docs/dependencies.md": page})

    def test_what_agrees_passes(self):
        self.assertIn("packages: 3, each with its row", self.said())

    def test_each_fault_is_named(self):
        row = "| libz-dev | 1 |\n"
        for said, found in [
                (self.said(packages=PACKAGES + "curl\n"), "docs/dependencies.md: no row for 'curl' of packages.txt"),
                (self.said(packages=PACKAGES + "cmake\n"), "packages.txt: 'cmake' stands there more than once"),
                (self.said(page=PAGE.replace(row, row + "| curl | 7 |\n")), "'curl' is not in packages.txt"),
                (self.said(page=PAGE.replace(row, row * 2)), "'libz-dev' has more than one row")]:
            self.assertIn(found, said)


if __name__ == "__main__":
    unittest.main()
