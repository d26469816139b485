/* An installed fathom.h: the model of the first argument answers a row. */
#include <fathom/fathom.h>
#include <stdio.h>

int main(int argc, char** argv) {
  fathom_error error = {0};
  fathom_model* model = NULL;
  const double row[] = {1, 2};
  double answers[2];
  if (argc != 2 || fathom_model_load(argv[1], NULL, &model, &error) ||
      fathom_model_predict(model, fathom_f64(row, 1, 2), fathom_out_f64(answers, 1, 2), NULL, &error)) {
    return fprintf(stderr, "%s\n", error.message), 1;
  }
  printf("fathom %s: %g %g\n", fathom_version(), answers[0], answers[1]);
  fathom_model_free(model);
  return 0;
}
