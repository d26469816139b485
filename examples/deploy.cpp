/// A trained model where there is no libtorch, linked against fathom::runtime alone: deploy MODEL NUMBER...
#include <fathom/runtime/model.hpp>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: deploy MODEL NUMBER...\n", 2;
  try {
    // [deploy]
    const fathom::runtime::Model model = fathom::runtime::load(argv[1]);
    std::vector<double> row;
    for (int i = 2; i < argc; ++i) row.push_back(std::stod(argv[i]));

    const std::vector<double> probabilities = model.predict(row);
    for (std::size_t i = 0; i < probabilities.size(); ++i)
      std::cout << model.spec().labels[i] << " " << probabilities[i] << "\n";
    // [/deploy]
    return 0;
  } catch (const std::exception& error) { return std::cerr << error.what() << "\n", 1; }
}
