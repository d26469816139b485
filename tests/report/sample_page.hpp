/// A page with every kind of figure, made of closed forms: what the tests of pages draw.
#pragma once

#include "fathom/report/page.hpp"

namespace fathom::report {

Page sample_page();

}  // namespace fathom::report
