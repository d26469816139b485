"""fathom from Python's ctypes: a network learns by loss and gradient, and a field written in Python is solved and differentiated.
ctypes_test.py LIBRARY MODEL"""
import ctypes
import math
import sys

FLOAT64, TANH, CALLBACK, INVALID = 2, 2, 6, 1
i32, i64, f64, size_t, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_double, ctypes.c_size_t, ctypes.c_void_p


def struct(name, **fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


Error = struct("Error", code=i32, message=ctypes.c_char * 508)
View = struct("View", data=pointer, rows=i64, columns=i64, type=i32)
Layer = struct("Layer", size=size_t, features=i64, activation=i32, reads_depth=i32)
Network = struct("Network", size=size_t, features=i64, inputs=i64, layers=ctypes.POINTER(Layer), layer_count=size_t, order=i64)
Evaluation = struct("Evaluation", depth=f64, samples=i64, state=pointer, parameters=pointer, input=pointer)
Product = struct("Product", state=pointer, parameters=pointer, input=pointer, depth=pointer)
Rate = ctypes.CFUNCTYPE(i32, pointer, ctypes.POINTER(Evaluation), pointer)
Pull = ctypes.CFUNCTYPE(i32, pointer, ctypes.POINTER(Evaluation), pointer, ctypes.POINTER(Product))
Callbacks = struct("Callbacks", size=size_t, type=i32, features=i64, parameters=i64, inputs=i64, rate=Rate, product=Pull,
                   context=pointer)
FieldDescription = struct("FieldDescription", size=size_t, features=i64, parameters=i64, inputs=i64)
Options = struct("Options", size=size_t, type=i32, method=ctypes.c_char_p, relative_tolerance=f64, absolute_tolerance=f64,
                 fixed_steps=i64, step_limit=i64, derivative=i32, threads=i32)
Data = struct("Data", size=size_t, start=View, parameters=View, input=View)
Gradient = struct("Gradient", size=size_t, start=View, parameters=View, input=View, depths=View, head=View)
Loss = struct("Loss", size=size_t, function=i32, huber_threshold=f64, targets=View, labels=pointer, label_count=size_t, mask=View,
              depth_weights=pointer, depth_weight_count=size_t, head=pointer, head_count=size_t, head_parameters=View)

library = ctypes.CDLL(sys.argv[1])
library.fathom_version.restype = ctypes.c_char_p
error = Error()


def call(name, *arguments):
    """The code of a function; its message is in `error`."""
    code = getattr(library, name)(*arguments, ctypes.byref(error))
    assert code == error.code, (name, code, error.code)
    assert bool(code) == bool(error.message), (name, code, error.message)
    return code


def done(name, *arguments):
    assert call(name, *arguments) == 0, (name, error.message)


def sized(struct_type, **fields):
    return struct_type(size=ctypes.sizeof(struct_type), **fields)


def view(numbers, rows):
    return View(ctypes.cast(numbers, pointer), rows, len(numbers) // rows, FLOAT64)


def doubles(values):
    return (f64 * len(values))(*values)


def numbers_at(address, count):
    return ctypes.cast(address, ctypes.POINTER(f64 * count)).contents


def session_of(field, **options):
    session = pointer()
    done("fathom_session_create", field, ctypes.byref(sized(Options, **options)), ctypes.byref(session))
    return session


def a_network_learns():
    layers = (Layer * 2)(sized(Layer, features=8, activation=TANH), sized(Layer, features=2))
    field = pointer()
    done("fathom_field_network", ctypes.byref(sized(Network, features=2, layers=layers, layer_count=2)), ctypes.byref(field))
    about = sized(FieldDescription)
    done("fathom_field_describe", field, ctypes.byref(about))
    assert about.parameters == 2 * 8 + 8 + 8 * 2 + 2
    theta, slope = doubles([0] * about.parameters), doubles([0] * about.parameters)
    done("fathom_field_initialise", field, ctypes.c_uint64(3), view(theta, 1))
    session = session_of(field)
    library.fathom_field_free(field)  # the session keeps what it needs

    depths = doubles([0.1 * p for p in range(10)])
    targets = doubles([f(s) for s in depths for f in (math.cos, math.sin)])
    data = sized(Data, start=view(doubles([1, 0]), 1), parameters=view(theta, 1))
    loss, gradient = sized(Loss, targets=view(targets, 10)), sized(Gradient, parameters=view(slope, 1))
    value = f64()

    def take():
        done("fathom_session_loss", session, ctypes.byref(data), depths, size_t(10), ctypes.byref(loss), ctypes.byref(gradient),
             ctypes.byref(value))
        return value.value

    first = take()
    for n in (0, 20, about.parameters - 1):
        found, there, width = slope[n], theta[n], 1e-5
        theta[n] = there + width
        above = take()
        theta[n] = there - width
        below = take()
        theta[n] = there
        assert abs((above - below) / (2 * width) - found) < 1e-5 + 1e-4 * abs(found), n
        take()
    for _ in range(200):
        take()
        for n in range(len(theta)):
            theta[n] -= 0.2 * slope[n]
    assert take() < 0.02 * first, (first, value.value)
    library.fathom_session_free(session)


def a_field_in_python():
    """q'' = -k q: q(s) = cos(sqrt(k) s)."""
    k, s = 2.5, 1.3

    @Rate
    def rate(_, at, out):
        z, (stiffness,) = numbers_at(at[0].state, 2), numbers_at(at[0].parameters, 1)
        to = numbers_at(out, 2)
        to[0], to[1] = z[1], -stiffness * z[0]
        return 0

    @Pull
    def pull(_, at, adjoint, to):
        z, (stiffness,), a = numbers_at(at[0].state, 2), numbers_at(at[0].parameters, 1), numbers_at(adjoint, 2)
        of_state = numbers_at(to[0].state, 2)
        of_state[0] += -stiffness * a[1]
        of_state[1] += a[0]
        if to[0].parameters:
            numbers_at(to[0].parameters, 1)[0] += -z[0] * a[1]
        return 0

    field = pointer()
    done("fathom_field_callbacks", ctypes.byref(sized(Callbacks, type=FLOAT64, features=2, parameters=1, rate=rate, product=pull)),
         ctypes.byref(field))
    session = session_of(field, relative_tolerance=1e-10, absolute_tolerance=1e-10)
    data = sized(Data, start=view(doubles([1, 0]), 1), parameters=view(doubles([k]), 1))
    states, up, of_k = doubles([0] * 4), doubles([0, 0, 1, 0]), doubles([0])
    done("fathom_session_solve", session, ctypes.byref(data), doubles([0, s]), size_t(2), view(states, 2), None)
    done("fathom_session_backward", session, view(up, 2), ctypes.byref(sized(Gradient, parameters=view(of_k, 1))))
    assert abs(states[2] - math.cos(math.sqrt(k) * s)) < 1e-8
    assert abs(of_k[0] + s * math.sin(math.sqrt(k) * s) / (2 * math.sqrt(k))) < 1e-8
    library.fathom_session_free(session)
    library.fathom_field_free(field)


def a_callback_may_fail():
    field = pointer()
    fails = Rate(lambda *_: 42)
    done("fathom_field_callbacks", ctypes.byref(sized(Callbacks, type=FLOAT64, features=1, rate=fails)), ctypes.byref(field))
    session = session_of(field)
    data, states = sized(Data, start=view(doubles([1]), 1)), doubles([0, 0])
    code = call("fathom_session_solve", session, ctypes.byref(data), doubles([0, 1]), size_t(2), view(states, 2), None)
    assert code == CALLBACK and b"`rate` returned 42" in error.message, error.message
    assert call("fathom_session_solve", session, ctypes.byref(data), doubles([0, 1]), size_t(2), view(states, 1), None) == INVALID
    assert b"`states` must be 2 x 1, got 1 x 2" in error.message, error.message
    library.fathom_session_free(session)
    library.fathom_field_free(field)


def a_model_answers():
    model = pointer()
    done("fathom_model_load", sys.argv[2].encode(), None, ctypes.byref(model))
    answers = doubles([0, 0])
    done("fathom_model_predict", model, view(doubles([1, 2]), 1), view(answers, 1), None)
    assert abs(sum(answers) - 1) < 1e-12, list(answers)
    library.fathom_model_free(model)


print(library.fathom_version().decode())
a_network_learns()
a_field_in_python()
a_callback_may_fail()
a_model_answers()
