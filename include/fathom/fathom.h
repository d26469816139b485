/** fathom for C and for every language that can call C: saved models, and fields that are solved, differentiated and trained.
 *
 *    fathom_error error = {0};
 *    fathom_model *model;
 *    if (fathom_model_load("iris.safetensors", NULL, &model, &error)) return puts(error.message), 1;
 *    double row[4] = {5.1, 3.5, 1.4, 0.2}, probabilities[3];
 *    fathom_model_predict(model, fathom_f64(row, 1, 4), fathom_out_f64(probabilities, 1, 3), NULL, &error);
 *    fathom_model_free(model);
 *
 * Errors: a function returns FATHOM_OK or a code, and writes the code and a message into the fathom_error that it is given, if any. It
 * never ends the program, throws, or prints. Of numbers that a failed call should have written, none can be relied on; handles that it
 * should have made are NULL. A session or workspace can be used again after a failed call.
 *
 * Structs: those with `size` as first member grow with later versions: set `size` to the sizeof of the struct. Members that are 0 have the
 * default that is written beside them, so that {.size = sizeof(struct)} is all defaults.
 *
 * Numbers are the caller's, in rows, with their type beside them; they are read and written during the call alone. Types, rows and columns
 * are checked.
 *
 * Threads: models and fields are constant; threads may share them. A workspace and a session are for one thread at a time; a call that
 * finds one in use by another thread, or by the callback that called it, is refused. Different sessions on different threads do not disturb
 * each other. A free function needs to be the last use of its handle.
 *
 * Lifetimes: a workspace keeps what it needs of its model, and a session what it needs of its field: models and fields may be freed first.
 * What the callbacks of a field point to must stay until the field and all its sessions are freed.
 */
#ifndef FATHOM_H
#define FATHOM_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define FATHOM_API
#else
#define FATHOM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fathom_code {
  FATHOM_OK = 0,
  FATHOM_INVALID_ARGUMENT = 1, /**< sizes, types or values that cannot be meant */
  FATHOM_FILE = 2,             /**< a file that is missing, damaged, or needs the full library */
  FATHOM_NOT_FINITE = 3,       /**< a solve met numbers that are not finite */
  FATHOM_STEP_TOO_SMALL = 4,   /**< a solve cannot reach its tolerance */
  FATHOM_TOO_MANY_STEPS = 5,   /**< a solve came to its step limit */
  FATHOM_CALLBACK = 6,         /**< a callback returned something else than 0 */
  FATHOM_OUT_OF_MEMORY = 7,
  FATHOM_INTERNAL = 8 /**< not the caller's fault: please report it */
} fathom_code;

typedef struct fathom_error {
  int32_t code;
  char message[508]; /**< what is required, what was given, what to do; cut where it does not fit */
} fathom_error;

/** The version of the library, such as "0.1.0". */
FATHOM_API const char* fathom_version(void);

/* ---- numbers ---------------------------------------------------------------------------------------------------------------------- */

typedef enum fathom_type { FATHOM_FLOAT32 = 1, FATHOM_FLOAT64 = 2 } fathom_type;

/** Numbers to read: rows x columns, one row after the other. Without data: none are given. */
typedef struct fathom_view {
  const void* data;
  int64_t rows;
  int64_t columns;
  int32_t type;
} fathom_view;

/** Numbers to write. Without data: they are not wanted. */
typedef struct fathom_out {
  void* data;
  int64_t rows;
  int64_t columns;
  int32_t type;
} fathom_out;

static inline fathom_view fathom_f64(const double* data, int64_t rows, int64_t columns) {
  fathom_view view = {data, rows, columns, FATHOM_FLOAT64};
  return view;
}
static inline fathom_view fathom_f32(const float* data, int64_t rows, int64_t columns) {
  fathom_view view = {data, rows, columns, FATHOM_FLOAT32};
  return view;
}
static inline fathom_out fathom_out_f64(double* data, int64_t rows, int64_t columns) {
  fathom_out out = {data, rows, columns, FATHOM_FLOAT64};
  return out;
}
static inline fathom_out fathom_out_f32(float* data, int64_t rows, int64_t columns) {
  fathom_out out = {data, rows, columns, FATHOM_FLOAT32};
  return out;
}

/* ---- saved models ----------------------------------------------------------------------------------------------------------------- */

typedef struct fathom_model fathom_model;
typedef struct fathom_workspace fathom_workspace;

typedef struct fathom_model_options {
  size_t size;
  int32_t threads; /**< that may share one large batch; 0: 1 */
} fathom_model_options;

/** `options` may be NULL: defaults. */
FATHOM_API fathom_code fathom_model_load(const char* path, const fathom_model_options* options,
                                         fathom_model** model, fathom_error* error);
/** The same from the content of a file. */
FATHOM_API fathom_code fathom_model_parse(const void* bytes, size_t size, const fathom_model_options* options,
                                          fathom_model** model, fathom_error* error);
FATHOM_API void fathom_model_free(fathom_model* model);

typedef enum fathom_task {
  FATHOM_CLASSIFICATION = 1,
  FATHOM_REGRESSION = 2,
  FATHOM_SERIES = 3,
  FATHOM_DENSITY = 4
} fathom_task;

/** Texts belong to the model. */
typedef struct fathom_model_description {
  size_t size;
  int32_t task;               /**< a fathom_task */
  int32_t type;               /**< in which it computes, a fathom_type */
  int64_t inputs;             /**< columns of a row */
  int64_t answers;            /**< numbers of an answer to a row, of a forecast at each time */
  int64_t features;           /**< of the state that is solved */
  int64_t parameters;         /**< numbers of its field */
  const char* const* columns; /**< (inputs): their names */
  const char* const* labels;  /**< classification: (answers), else NULL */
  const char* const* targets; /**< regression: (answers), else NULL */
  const char* specification;  /**< all that is known of it, as JSON */
} fathom_model_description;
/** Writes the first `size` bytes of what it knows. */
FATHOM_API fathom_code fathom_model_describe(const fathom_model* model, fathom_model_description* description,
                                             fathom_error* error);

/** What the calls of one thread need again: with one, a call like an earlier one allocates nothing. */
FATHOM_API fathom_code fathom_workspace_create(const fathom_model* model, fathom_workspace** workspace,
                                               fathom_error* error);
FATHOM_API void fathom_workspace_free(fathom_workspace* workspace);

/** (rows, inputs) -> (rows, answers): probabilities of the labels, targets, or the logarithm of the density. `workspace` may be NULL.
 *  All are FATHOM_FLOAT64, whatever the model computes in. */
FATHOM_API fathom_code fathom_model_predict(const fathom_model* model, fathom_view rows, fathom_out answers,
                                            fathom_workspace* workspace, fathom_error* error);
/** A series: (rows, inputs) at times[0] -> (times x rows, answers), one time after the other. */
FATHOM_API fathom_code fathom_model_forecast(const fathom_model* model, fathom_view rows, const double* times,
                                             size_t time_count, fathom_out answers,
                                             fathom_workspace* workspace, fathom_error* error);
/** A density: as many samples as `samples` has rows, (samples, inputs); the same for the same seed. */
FATHOM_API fathom_code fathom_model_sample(const fathom_model* model, uint64_t seed, fathom_out samples,
                                           fathom_error* error);

/* ---- fields ----------------------------------------------------------------------------------------------------------------------- */

/** z'(s) = f(s, z, u; theta): the state z of each sample, depth (or time) s, an input u of each sample, parameters theta of all. */
typedef struct fathom_field fathom_field;

typedef enum fathom_activation {
  FATHOM_IDENTITY = 1,
  FATHOM_TANH = 2,
  FATHOM_RELU = 3,
  FATHOM_SOFTPLUS = 4,
  FATHOM_ELU = 5,
  FATHOM_SIGMOID = 6,
  FATHOM_SILU = 7
} fathom_activation;

/** h -> activation(W h + b) */
typedef struct fathom_layer {
  size_t size;
  int64_t features;    /**< of its answer */
  int32_t activation;  /**< a fathom_activation; 0: FATHOM_IDENTITY */
  int32_t reads_depth; /**< not 0: depth is one more feature of what it reads */
} fathom_layer;

typedef struct fathom_network_options {
  size_t size;
  int64_t features;           /**< of the state */
  int64_t inputs;             /**< of u, which is read beside the state; 0: none */
  const fathom_layer* layers; /**< the last one has as many features as the state, divided by `order` */
  size_t layer_count;
  int64_t order; /**< equal blocks of the state, each the derivative of the one before; 0: 1 */
} fathom_network_options;
/** Parameters: weight (features, read) and bias (features) of each layer in turn. */
FATHOM_API fathom_code fathom_field_network(const fathom_network_options* options, fathom_field** field,
                                            fathom_error* error);

/** The field of a model, for sessions: solved at other depths, differentiated, trained further. */
FATHOM_API fathom_code fathom_field_of_model(const fathom_model* model, fathom_field** field,
                                             fathom_error* error);
/** Its parameters, (1, parameters) of either type. */
FATHOM_API fathom_code fathom_model_parameters(const fathom_model* model, fathom_out parameters,
                                               fathom_error* error);

/** Where a field is evaluated: arrays of the type of the field, for the callback alone. */
typedef struct fathom_evaluation {
  double depth;
  int64_t samples;
  const void* state;      /**< (samples, features) */
  const void* parameters; /**< (parameters) */
  const void* input;      /**< (samples, inputs) */
} fathom_evaluation;

/** Where a vector-Jacobian product goes: all are zero before the call, to be added to. NULL: not wanted. */
typedef struct fathom_product {
  void* state;      /**< (samples, features): (df/dz)^T a; never NULL */
  void* parameters; /**< (parameters): (df/dtheta)^T a, summed over samples */
  void* input;      /**< (samples, inputs): (df/du)^T a */
  void* depth;      /**< (samples): df/ds . a */
} fathom_product;

/** A field that the caller computes, all samples at once. Callbacks return 0; anything else ends the solve with FATHOM_CALLBACK. They run
 *  on the thread that calls the session. */
typedef struct fathom_callback_options {
  size_t size;
  int32_t type; /**< of the numbers and of its sessions, a fathom_type */
  int64_t features;
  int64_t parameters;                                                      /**< numbers; 0: none */
  int64_t inputs;                                                          /**< of u; 0: none */
  int32_t (*rate)(void* context, const fathom_evaluation* at, void* rate); /**< (samples, features) */
  /** NULL: the field can be solved, but not differentiated. `adjoint`: a, (samples, features). */
  int32_t (*product)(void* context, const fathom_evaluation* at, const void* adjoint,
                     const fathom_product* to);
  void* context;
} fathom_callback_options;
FATHOM_API fathom_code fathom_field_callbacks(const fathom_callback_options* options, fathom_field** field,
                                              fathom_error* error);

typedef struct fathom_field_description {
  size_t size;
  int64_t features;
  int64_t parameters; /**< numbers */
  int64_t inputs;     /**< of u; 0: none */
} fathom_field_description;
/** Writes the first `size` bytes of what it knows. */
FATHOM_API fathom_code fathom_field_describe(const fathom_field* field, fathom_field_description* description,
                                             fathom_error* error);
/** Fresh parameters, (1, parameters) of either type: the same for the same seed, on every platform. */
FATHOM_API fathom_code fathom_field_initialise(const fathom_field* field, uint64_t seed,
                                               fathom_out parameters, fathom_error* error);
FATHOM_API void fathom_field_free(fathom_field* field);

/* ---- sessions --------------------------------------------------------------------------------------------------------------------- */

/** Solves a field, pulls gradients back through the solve, and takes losses. Made once, called often: a call like an earlier one (as
 *  many samples, depths and accepted steps) allocates nothing. Other numbers, depths and batch sizes need no other session. */
typedef struct fathom_session fathom_session;

typedef enum fathom_derivative {
  FATHOM_DISCRETE = 1, /**< the exact gradient of the computed solution */
  FATHOM_ADJOINT = 2,  /**< the adjoint equation, integrated backwards: constant memory */
  FATHOM_NONE = 3      /**< a solve keeps nothing for gradients */
} fathom_derivative;

typedef struct fathom_session_options {
  size_t size;
  int32_t type;              /**< of all its numbers, a fathom_type; 0: FATHOM_FLOAT64 */
  const char* method;        /**< "dopri5", "tsit5", "rk4", ...; NULL: "dopri5" */
  double relative_tolerance; /**< 0: 1e-4 */
  double absolute_tolerance; /**< 0: 1e-4 */
  int64_t fixed_steps;       /**< so many equal steps in place of adapted ones; 0: adapted */
  int64_t step_limit;        /**< attempts, accepted or not; 0: 100000 */
  int32_t derivative;        /**< a fathom_derivative; 0: FATHOM_DISCRETE */
  int32_t threads;           /**< that may share a batch of more than 16 samples; 0: 1 */
} fathom_session_options;
/** `options` may be NULL: defaults. */
FATHOM_API fathom_code fathom_session_create(const fathom_field* field, const fathom_session_options* options,
                                             fathom_session** session, fathom_error* error);
FATHOM_API void fathom_session_free(fathom_session* session);

/** The numbers of a solve, all of the session's type. */
typedef struct fathom_data {
  size_t size;
  fathom_view start;      /**< (samples, features) */
  fathom_view parameters; /**< (1, parameters) */
  fathom_view input;      /**< (samples, inputs) */
  /** NULL: all samples have the depths of the call. Otherwise (samples): each has so many of them for itself, at least 2, those of sample 0
   *  first. States, targets and the like then have a row for each sample and depth in that order. */
  const int64_t* depth_counts;
  size_t depth_counts_size; /**< of that array */
} fathom_data;

typedef struct fathom_report {
  size_t size;
  int64_t evaluations;          /**< of the field, forwards */
  int64_t backward_evaluations; /**< of its vector-Jacobian product */
  int64_t accepted;             /**< steps */
  int64_t rejected;
  double seconds; /**< forwards */
} fathom_report;

/** From depths[0] to the last one, either direction. `states`: (depths x samples, features), one depth after the other, the start first.
 *  `report` may be NULL. */
FATHOM_API fathom_code fathom_session_solve(fathom_session* session, const fathom_data* data,
                                            const double* depths, size_t depth_count, fathom_out states,
                                            fathom_report* report, fathom_error* error);

/** Where a gradient is written; what has no data is not wanted and not computed. Of the session's type but for `depths`. */
typedef struct fathom_gradient {
  size_t size;
  fathom_out start;      /**< (samples, features) */
  fathom_out parameters; /**< (1, parameters) */
  fathom_out input;      /**< (samples, inputs) */
  fathom_out depths;     /**< (1, depths), FATHOM_FLOAT64: of saved depths, and of the bounds */
  fathom_out head;       /**< of a loss alone: like its head_parameters */
} fathom_gradient;

/** Gradients of the last solve from dL/d(states), (depths x samples, features); as often as wanted. */
FATHOM_API fathom_code fathom_session_backward(fathom_session* session, fathom_view states,
                                               const fathom_gradient* gradient, fathom_error* error);

typedef enum fathom_loss_function {
  FATHOM_SQUARES = 1,          /**< mean of (a - y)^2 */
  FATHOM_ABSOLUTE = 2,         /**< mean of |a - y| */
  FATHOM_HUBER = 3,            /**< squares of small, absolute values of large differences, halved */
  FATHOM_CROSS_ENTROPY = 4,    /**< of scores a and labels */
  FATHOM_NORMAL_LIKELIHOOD = 5 /**< -log N(a; 0, 1) */
} fathom_loss_function;

/** Targets, labels and mask have a row for each sample, at the last depth alone; or for each depth and sample, one depth after the other,
 *  the start first. */
typedef struct fathom_loss {
  size_t size;
  int32_t function;       /**< a fathom_loss_function; 0: FATHOM_SQUARES */
  double huber_threshold; /**< 0: 1 */
  fathom_view targets;    /**< (rows, answer) */
  const int64_t* labels;  /**< (rows), of the cross entropy */
  size_t label_count;
  fathom_view
      mask; /**< (rows, answer) or (rows, 1): numbers with a 0 here do not count, and their target may be NaN */
  const double* depth_weights; /**< one for each depth with targets; NULL: 1 */
  size_t depth_weight_count;
  const fathom_layer*
      head; /**< layers from the features of a state to an answer; NULL: answers are the states */
  size_t head_count;
  fathom_view head_parameters; /**< (1, numbers of its layers), weight and bias of each in turn */
} fathom_loss;
/** The value of a loss, and with `gradient` (or NULL) its derivatives, in one solve. */
FATHOM_API fathom_code fathom_session_loss(fathom_session* session, const fathom_data* data,
                                           const double* depths, size_t depth_count, const fathom_loss* loss,
                                           const fathom_gradient* gradient, double* value,
                                           fathom_error* error);

#ifdef __cplusplus
}
#endif

#endif
