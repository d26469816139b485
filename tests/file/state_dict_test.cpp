/// Files written by torch.save (fuzz/corpus/state_dict, made with torch 1.13) give their tensors; others are refused.
#include "fathom/file/state_dict.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "fathom/file/pickle.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom {
namespace {

std::filesystem::path corpus(const char* name) {
  return std::filesystem::path(FATHOM_SOURCE_DIR) / "fuzz/corpus/state_dict" / name;
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no complaint";
}

using Numbers = std::vector<double>;

TEST(StateDict, gives_the_tensors_of_a_module) {
  const auto tensors = read_tensors(corpus("good-sequential.pt"));
  EXPECT_EQ(tensors.size(), 7u);
  EXPECT_EQ(tensors.at("0.weight").shape, (Shape{3, 2}));
  EXPECT_EQ(tensors.at("0.weight").numbers<double>(), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(tensors.at("0.bias").numbers<float>(), (std::vector<float>{0.5F, -1, 1e-3F}));
  EXPECT_EQ(tensors.at("1.running_var").numbers<double>(), (Numbers{1, 1, 1}));
  EXPECT_EQ(tensors.at("1.num_batches_tracked").type, DataType::i64);
  EXPECT_EQ(tensors.at("1.num_batches_tracked").shape, Shape{});
}

TEST(StateDict, views_are_read_through_their_strides) {
  const auto tensors = read_tensors(corpus("good-views.pt"));
  EXPECT_EQ(tensors.at("t").shape, (Shape{4, 3}));
  EXPECT_EQ(tensors.at("t").numbers<double>(), (Numbers{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(tensors.at("part").numbers<double>(), (Numbers{5, 6, 9, 10}));
  EXPECT_EQ(tensors.at("half").numbers<double>(), (Numbers{1, -2}));
  EXPECT_EQ(tensors.at("scalar").numbers<double>(), (Numbers{7}));
  EXPECT_EQ(tensors.at("empty").shape, (Shape{0, 3}));
  EXPECT_EQ(tensors.at("p").numbers<double>(), (Numbers{1, 1}));
}

// An axis of one element may have any stride: nothing ever moves along it.
TEST(StateDict, the_stride_of_an_axis_of_one_element_does_not_matter) {
  const auto tensors = read_tensors(corpus("good-huge-stride.pt"));
  EXPECT_EQ(tensors.at("a").shape, (Shape{1, 3, 1}));
  EXPECT_EQ(tensors.at("a").numbers<double>(), (Numbers{1, 2, 3}));
}

TEST(StateDict, other_files_of_torch_are_named) {
  EXPECT_NE(
      complaint([] { read_tensors(corpus("module.pt")); }).find("save model.state_dict(), not the model"),
      std::string::npos);
  EXPECT_NE(complaint([] { read_tensors(corpus("number.pt")); }).find("has `a`, which is not a tensor"),
            std::string::npos);
  EXPECT_NE(complaint([] { read_tensors(corpus("legacy.pt")); }).find("is not a valid safetensors file"),
            std::string::npos);
  EXPECT_NE(complaint([] { parse_state_dict("abc"); }).find("torch 1.6 or newer"), std::string::npos);
}

TEST(StateDict, every_shorter_file_is_refused) {
  const std::string bytes = read_whole(corpus("good-views.pt"));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_state_dict(std::string_view(bytes).substr(0, size)), Error) << size;
}

std::string text_of(const std::string& word) { return "X" + std::string{char(word.size()), 0, 0, 0} + word; }

/// {"a": a tensor on the storage "0" of four floats}
std::string pickled(const std::string& offset, const std::string& shape, const std::string& strides) {
  const std::string address =
      "(" + text_of("storage") + "ctorch\nFloatStorage\n" + text_of("0") + text_of("cpu") + "K\4tQ";
  return "}" + text_of("a") + "ctorch._utils\n_rebuild_tensor_v2\n(" + address + offset + shape + strides +
         "\x89}tRs.";
}

TEST(StateDict, hostile_pickles_are_refused) {
  EXPECT_EQ(unpickled_state_dict(pickled("K\1", "K\3\x85", "K\1\x85")).front().second.offset, 1);
  const auto refused = [](const std::string& pickle, const char* expected) {
    const std::string message = complaint([&] { unpickled_state_dict(pickle); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  refused("", "ends early");
  refused(".", "empty stack");
  refused("(.", "takes a mark for a value");
  refused("N.", "where a dictionary of tensors should be");
  refused("cos\nsystem\n" + text_of("ls") + "\x85R.", "makes a `os system`");
  refused("h\1.", "recalls what it never remembered");
  refused("X\xff\xff\xff\xff.", "ends early");
  refused("t.", "no mark");
  refused("]Ns.", "empty stack");
  refused("}(Nu.", "a key without a value");
  refused("\x80\1.", "protocol 1");
  refused("i.", "no state_dict needs");
  refused(std::string(100000, '}') + ".", "");  // as many values as there are bytes, and no more
  // A list that holds itself is neither followed nor leaked.
  refused(std::string("}q\0h\0h\0s.", 10), "where the name of a tensor should be");
}

}  // namespace
}  // namespace fathom
