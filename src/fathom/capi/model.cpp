/// fathom.h: saved models.
#include <cmath>

#include "fathom/capi/handles.hpp"
#include "fathom/runtime/program.hpp"

namespace fathom::capi {

namespace {

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  for (const std::string& each : texts) all.push_back(each.c_str());
  return all;
}

int32_t task_of(Task task) {
  switch (task) {
    case Task::classification: return FATHOM_CLASSIFICATION;
    case Task::regression: return FATHOM_REGRESSION;
    case Task::series: return FATHOM_SERIES;
    case Task::density: return FATHOM_DENSITY;
  }
  throw Error("a task has no number");
}

fathom_model* made_from(ModelFile file, const fathom_model_options* options) {
  const fathom_model_options known_options = known_or_default(options, "fathom_model_options");
  require(known_options.threads >= 0, "`threads` must be at least 1, or 0 for the default, got ",
          known_options.threads);
  auto parameters = runtime::field_parameters<double>(file);
  runtime::Model model(std::move(file), {.threads = known_options.threads == 0 ? 1 : known_options.threads});
  ProgramField field = runtime::field_of(model.spec(), runtime::Carries::state);
  std::string specification = to_json(model.spec());
  auto made = std::unique_ptr<fathom_model>(new fathom_model{.model = std::move(model),
                                                             .field = std::move(field),
                                                             .parameters = std::move(parameters),
                                                             .specification = std::move(specification),
                                                             .columns = {},
                                                             .labels = {},
                                                             .targets = {}});
  const ModelSpec& spec = made->model.spec();
  made->columns = pointers_to(spec.inputs);
  if (spec.task == Task::classification) made->labels = pointers_to(spec.labels);
  if (spec.task == Task::regression) made->targets = pointers_to(spec.targets);
  return made.release();
}

/// Without a workspace of the caller's, in one of the moment.
template <class Work>
void with_workspace(const fathom_model* model, fathom_workspace* given, const Work& work) {
  if (given) {
    const InUse in_use(given->in_use, "workspace");
    return work(given->workspace);
  }
  runtime::Workspace own(model->model);
  work(own);
}

}  // namespace

}  // namespace fathom::capi

using namespace fathom;
using namespace fathom::capi;

const char* fathom_version(void) { return FATHOM_VERSION; }

fathom_code fathom_model_load(const char* path, const fathom_model_options* options, fathom_model** model,
                              fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    *model = nullptr;
    require_given(path, "path");
    *model = made_from(read_model_file(path), options);
  });
}

fathom_code fathom_model_parse(const void* bytes, size_t size, const fathom_model_options* options,
                               fathom_model** model, fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    *model = nullptr;
    require_given(bytes, "bytes");
    *model = made_from(parse_model_file({static_cast<const char*>(bytes), size}), options);
  });
}

void fathom_model_free(fathom_model* model) { delete model; }

fathom_code fathom_model_describe(const fathom_model* model, fathom_model_description* description,
                                  fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    const ModelSpec& spec = model->model.spec();
    write_known(description,
                {.size = 0,
                 .task = task_of(spec.task),
                 .type = spec.precision == Precision::float32 ? FATHOM_FLOAT32 : FATHOM_FLOAT64,
                 .inputs = spec.input_features(),
                 .answers = int64_t(model->model.answer_size()),
                 .features = spec.state_features(),
                 .parameters = int64_t(model->parameters.size()),
                 .columns = model->columns.data(),
                 .labels = model->labels.empty() ? nullptr : model->labels.data(),
                 .targets = model->targets.empty() ? nullptr : model->targets.data(),
                 .specification = model->specification.c_str()},
                "fathom_model_description");
  });
}

fathom_code fathom_workspace_create(const fathom_model* model, fathom_workspace** workspace,
                                    fathom_error* error) {
  return answer(error, [&] {
    require_given(workspace, "workspace");
    *workspace = nullptr;
    require_given(model, "model");
    *workspace = new fathom_workspace{.workspace = runtime::Workspace(model->model)};
  });
}

void fathom_workspace_free(fathom_workspace* workspace) { delete workspace; }

fathom_code fathom_model_predict(const fathom_model* model, fathom_view rows, fathom_out answers,
                                 fathom_workspace* workspace, fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    const auto from = numbers_of<double>(rows, rows.rows, model->model.spec().input_features(), "rows");
    const auto to = numbers_of<double>(answers, rows.rows, int64_t(model->model.answer_size()), "answers");
    with_workspace(model, workspace, [&](runtime::Workspace& work) {
      model->model.predict_into({from.data, from.size()}, {to.data, to.size()}, work);
    });
  });
}

fathom_code fathom_model_forecast(const fathom_model* model, fathom_view rows, const double* times,
                                  size_t time_count, fathom_out answers, fathom_workspace* workspace,
                                  fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    require_given(times, "times");
    const auto from = numbers_of<double>(rows, rows.rows, model->model.spec().input_features(), "rows");
    constexpr size_t most = size_t(1) << 31;
    require(time_count <= most && rows.rows <= int64_t(most), "a forecast has fewer rows and times than ",
            most);
    const auto to = numbers_of<double>(answers, int64_t(time_count) * rows.rows,
                                       int64_t(model->model.answer_size()), "answers");
    with_workspace(model, workspace, [&](runtime::Workspace& work) {
      model->model.forecast_into({from.data, from.size()}, {times, time_count}, {to.data, to.size()}, work);
    });
  });
}

fathom_code fathom_model_sample(const fathom_model* model, uint64_t seed, fathom_out samples,
                                fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    const auto to =
        numbers_of<double>(samples, samples.rows, model->model.spec().input_features(), "samples");
    const std::vector<double> found = model->model.sample(size_t(to.rows), seed);
    std::copy(found.begin(), found.end(), to.data);
  });
}

fathom_code fathom_field_of_model(const fathom_model* model, fathom_field** field, fathom_error* error) {
  return answer(error, [&] {
    require_given(field, "field");
    *field = nullptr;
    require_given(model, "model");
    *field = new fathom_field{.field = model->field};
  });
}

fathom_code fathom_model_parameters(const fathom_model* model, fathom_out parameters, fathom_error* error) {
  return answer(error, [&] {
    require_given(model, "model");
    write_row(model->parameters, parameters, "parameters");
  });
}
