/// Pieces of HTML that pages share. Internal.
#pragma once

#include <string>

#include "fathom/report/page.hpp"

namespace fathom::report {

/// Text as it may stand in an element or in quotes.
std::string escaped(const std::string& words);

/// <tag class="name">words</tag>, or nothing where there are no words.
std::string element(const std::string& tag, const std::string& words, const std::string& name = {});

std::string verdict_list(const std::vector<Verdict>& verdicts);

struct Document {
  std::string title;
  std::string main;         ///< inside <main>
  bool figures = true;      ///< carries Vega
  std::string live = {};    ///< where the state of a run that is still training can be asked for
  int refresh_seconds = 0;  ///< loads itself anew; 0: never
};
std::string html(const Document& document);

/// Header and sections of a page: what stands inside its <main>.
std::string main_part(const Page& page);

}  // namespace fathom::report
