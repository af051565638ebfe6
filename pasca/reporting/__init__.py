"""The report of a run: one HTML page that needs no network, opened by any browser.

`gathered.py` collects what a run has to say, one file a section turns it into texts, tables and plots (`parts.py`), and
`page.py` puts them together. The page's style and behaviour are `page.css` and `page.js`, its frame is `page.html`.
"""

from __future__ import annotations

from pasca.reporting.live import follow_report
from pasca.reporting.page import report_page, write_report

__all__ = ["follow_report", "report_page", "write_report"]
