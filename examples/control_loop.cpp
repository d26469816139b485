/// A trained model in a control loop: no allocation and no set-up in a call. control_loop MODEL NUMBER...
#include <fathom/runtime/model.hpp>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: control_loop MODEL NUMBER...\n", 2;
  try {
    std::vector<double> row;
    for (int i = 2; i < argc; ++i) row.push_back(std::stod(argv[i]));
    // [loop]
    const fathom::runtime::Model model = fathom::runtime::load(argv[1]);
    fathom::runtime::Workspace workspace(model);  // one for each thread
    std::vector<double> answer(model.answer_size());
    for (int tick = 0; tick < 1000; ++tick) {
      row.front() += 1e-3;
      model.predict_into(row, answer, workspace);
    }
    std::cout << answer.front() << ", " << workspace.report().evaluations << " evaluations\n";
    // [/loop]
    return 0;
  } catch (const std::exception& error) { return std::cerr << error.what() << "\n", 1; }
}
