/// Ctrl-C (and SIGTERM) as a question: while one of these lives, the first is only noted, and a second ends the program.
#pragma once

namespace fathom::app {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool asked();
};

}  // namespace fathom::app
