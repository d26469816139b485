#include "fathom/ode/methods.hpp"

int main() { return fathom::ode::dopri5().order == 5 ? 0 : 1; }
