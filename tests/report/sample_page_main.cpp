/// Writes the sample page to the file named by its argument, for the test in a browser.
#include <iostream>

#include "report/sample_page.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: report_sample_page FILE\n";
    return 2;
  }
  fathom::report::write_page(arguments[1], fathom::report::sample_page());
}
