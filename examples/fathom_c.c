/* fathom from C99: a saved model answers a row, and a small field learns a spiral. fathom_c MODEL NUMBER... */
#include <fathom/fathom.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const fathom_error* error) {
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

static int predict(const char* path, const double* row, int64_t inputs) {
  // [predict]
  fathom_error error = {0};
  fathom_model* model;
  if (fathom_model_load(path, NULL, &model, &error)) return failed(&error);
  fathom_model_description about = {.size = sizeof about};
  fathom_model_describe(model, &about, &error);
  double* answers = malloc((size_t)about.answers * sizeof *answers);
  if (fathom_model_predict(model, fathom_f64(row, 1, inputs), fathom_out_f64(answers, 1, about.answers), NULL,
                           &error)) {
    failed(&error);
  } else {
    for (int64_t i = 0; i < about.answers; ++i)
      printf("%s %g\n", about.labels ? about.labels[i] : "", answers[i]);
  }
  free(answers);
  fathom_model_free(model);
  // [/predict]
  return error.code != FATHOM_OK;
}

enum { points = 20, most_parameters = 200 };

static int train(void) {
  double depths[points];
  float spiral[2 * points], theta[most_parameters], slope[most_parameters], mean[most_parameters] = {0};
  for (int p = 0; p < points; ++p) {
    depths[p] = 0.1 * p;
    spiral[2 * p] = (float)(exp(-0.2 * depths[p]) * cos(2 * depths[p]));
    spiral[2 * p + 1] = (float)(exp(-0.2 * depths[p]) * sin(2 * depths[p]));
  }
  fathom_error error = {0};
  // [train]
  const fathom_layer layers[] = {{.size = sizeof *layers, .features = 16, .activation = FATHOM_TANH},
                                 {.size = sizeof *layers, .features = 2}};
  const fathom_network_options network = {
      .size = sizeof network, .features = 2, .layers = layers, .layer_count = 2};
  const fathom_session_options options = {.size = sizeof options, .type = FATHOM_FLOAT32};
  fathom_field* field;
  fathom_session* session = NULL;
  if (fathom_field_network(&network, &field, &error)) return failed(&error);
  fathom_field_description about = {.size = sizeof about};
  fathom_field_describe(field, &about, &error);
  const int64_t count = about.parameters; /* of theta and slope */
  if (count > most_parameters || fathom_field_initialise(field, 1, fathom_out_f32(theta, 1, count), &error) ||
      fathom_session_create(field, &options, &session, &error)) {
    fathom_field_free(field);
    return failed(&error);
  }

  const fathom_data data = {
      .size = sizeof data, .start = fathom_f32(spiral, 1, 2), .parameters = fathom_f32(theta, 1, count)};
  const fathom_loss loss = {.size = sizeof loss, .targets = fathom_f32(spiral, points, 2)};
  const fathom_gradient gradient = {.size = sizeof gradient, .parameters = fathom_out_f32(slope, 1, count)};
  double value = 0;
  for (int iteration = 0; iteration < 400 && error.code == FATHOM_OK; ++iteration) {
    fathom_session_loss(session, &data, depths, points, &loss, &gradient, &value, &error);
    for (int64_t n = 0; n < count; ++n) {
      mean[n] = 0.9f * mean[n] + slope[n];
      theta[n] -= 0.02f * mean[n];
    }
  }
  fathom_session_free(session);
  fathom_field_free(field);
  // [/train]
  if (error.code != FATHOM_OK) return failed(&error);
  printf("loss %g\n", value);
  return !(value < 0.02);
}

int main(int argc, char** argv) {
  double row[100];
  if (argc < 2 || argc > 100) return fprintf(stderr, "usage: fathom_c MODEL NUMBER...\n"), 2;
  for (int i = 2; i < argc; ++i) row[i - 2] = atof(argv[i]);
  return predict(argv[1], row, argc - 2) || train();
}
