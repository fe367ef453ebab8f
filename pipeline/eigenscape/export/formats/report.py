"""The page about a run: map, accuracy, eigenvectors, cost."""

from eigenscape.base.footprint import Footprint
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.report.page import REPORT, report_bytes, write_page
from eigenscape.export.report.source import Source


class Report(Format):
    """One HTML page without a request to anywhere."""

    name = "report"
    arrays = ("labels/class", "spectrum/vector")
    tables = True
    last = True

    def write(self, product: Product) -> dict[str, str]:
        """Write ``report.html``."""
        write_page(Source.of_context(product.context), product.path(REPORT))
        return {"report": REPORT}

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count the pictures of the page."""
        return Footprint(1, shared=report_bytes(amounts.cells), disk=4 * 2**20)
