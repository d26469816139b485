/// Files come back as they went, and a file that is not one is refused with a sentence.
#include "fathom/file/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "fathom/support/whole_file.hpp"

namespace fathom {
namespace {

TensorFile example() {
  const std::vector<float> weight = {1, -2, 0.5F, 3e38F, 1e-40F, -0.0F};
  const std::vector<double> mean = {0.1, 1e300, -5e-324};
  TensorFile file;
  file.tensors["field.1.weight"] = stored_tensor<float>({2, 3}, weight);
  file.tensors["mean"] = stored_tensor<double>({3}, mean);
  file.tensors["scalar"] = stored_tensor<float>({}, std::vector<float>{7});
  file.tensors["empty"] = stored_tensor<float>({0, 5}, {});
  file.tensors["mask"] = {.type = DataType::boolean, .shape = {3}, .bytes = std::string("\1\0\1", 3)};
  file.metadata = {{"task", "series"}, {"note", "\"quoted\", \xC3\xA4 and\nmore"}};
  return file;
}

std::string with_header(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string message_for(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "`m`");
  } catch (const Error& error) { return error.what(); }
  return "";
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("fathom_file_test" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  std::size_t files() const {
    return std::size_t(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

TEST(Safetensors, come_back_bit_for_bit) {
  const TensorFile file = example();
  const TensorFile again = parse_safetensors(to_bytes(file));
  EXPECT_EQ(again.metadata, file.metadata);
  ASSERT_EQ(again.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(again.tensors.at(name).type, tensor.type) << name;
    EXPECT_EQ(again.tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(again.tensors.at(name).bytes, tensor.bytes) << name;
  }
}

TEST(Safetensors, align_every_tensor_to_its_type) {
  const std::string bytes = to_bytes(example());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::size_t place = bytes.find(example().tensors.at("mean").bytes);
  EXPECT_EQ(place % 8, 0u);
}

TEST(Safetensors, half_precision_is_widened_exactly) {
  const auto number = [](DataType type, std::uint16_t bits) {
    StoredTensor one{.type = type, .shape = {1}, .bytes = std::string(2, '\0')};
    std::memcpy(one.bytes.data(), &bits, 2);
    return one.numbers<double>().front();
  };
  EXPECT_EQ(number(DataType::f16, 0x3c00), 1.0);
  EXPECT_EQ(number(DataType::f16, 0xc000), -2.0);
  EXPECT_EQ(number(DataType::f16, 0x7bff), 65504.0);
  EXPECT_EQ(number(DataType::f16, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(number(DataType::f16, 0x83ff), -1023 * std::ldexp(1.0, -24));
  EXPECT_TRUE(std::isinf(number(DataType::f16, 0x7c00)));
  EXPECT_TRUE(std::isnan(number(DataType::f16, 0x7e00)));
  EXPECT_EQ(number(DataType::bf16, 0x4049), 3.140625);
}

TEST(Safetensors, whole_numbers_are_not_taken_for_real_ones) {
  EXPECT_THROW(example().tensors.at("mask").numbers<float>(), Error);
}

TEST(Safetensors, values_must_fill_the_shape) {
  EXPECT_THROW(stored_tensor<float>({2, 2}, std::vector<float>(3)), InvalidArgument);
  EXPECT_THROW(stored_tensor<double>({std::int64_t(1) << 40, std::int64_t(1) << 40}, std::vector<double>(3)),
               InvalidArgument);
}

TEST(Safetensors, every_shorter_file_is_refused) {
  const std::string bytes = to_bytes(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(message_for(bytes.substr(0, size)), "")
        << size << " of " << bytes.size() << " bytes were taken";
  }
  EXPECT_NE(message_for(bytes + "x"), "");
}

TEST(Safetensors, hostile_headers_are_refused_in_one_sentence) {
  const std::string tensor = R"("dtype":"F32","shape":[1])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "only 0 byte"},
      {std::string(8, '\xff'), "header would have 18446744073709551615 bytes"},
      {with_header("{}").substr(0, 9), "cut off"},
      {with_header("{"), "not JSON"},
      {with_header("[]"), "not a JSON object"},
      {with_header("{\"\xff\":{}}"), "not JSON"},
      {with_header("{\"a\":1}"), "not an object"},
      {with_header(R"({"a":{}})"), "has no `dtype`"},
      {with_header(R"({"__metadata__":{"a":1}})"), "not a text"},
      {with_header(R"({"__metadata__":[]})"), "not an object of texts"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[0,8]}}", "1234"), "bytes 0 to 8 of 4"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[4,0]}}", "1234"), "bytes 4 to 0 of 4"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[-1,3]}}", "1234"), "not two numbers"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[0.0,4.0]}}", "1234"), "not two numbers"},
      {with_header(
           "{\"a\":{" + tensor + ",\"data_offsets\":[0,4]},\"b\":{" + tensor + ",\"data_offsets\":[0,4]}}",
           "1234"),
       "begins at byte 0 of the data, not at 4"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[4,8]}}", "12341234"), "begins at byte 4"},
      {with_header("{\"a\":{" + tensor + ",\"data_offsets\":[0,4]}}", "12345"),
       "1 byte(s) of its data belong to no tensor"},
      {with_header(
           "{\"a\":{" + tensor + ",\"data_offsets\":[0,4]},\"a\":{" + tensor + ",\"data_offsets\":[4,8]}}",
           "12345678"),
       "`a` occurs twice"},
      {with_header(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "1234"), "unknown type"},
      {with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
       "does not fit its 4 bytes"},
      {with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"),
       "not a whole number"},
      {with_header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"),
       "does not fit"},
      {with_header(R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", "1234"), "not JSON"},
      {with_header("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}"),
       "nested too deeply"},
      {with_header("{\"a\":" + std::string(100000, '[')), "nested too deeply"},
  };
  for (const auto& [bytes, expected] : cases) {
    const std::string message = message_for(bytes);
    EXPECT_NE(message.find(expected), std::string::npos)
        << "expected `" << expected << "`, got `" << message << "`";
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Safetensors, flipped_bits_are_refused_or_give_tensors_that_fit) {
  const std::string bytes = to_bytes(example());
  std::mt19937 random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string damaged = bytes;
    const int flips = 1 + int(random() % 4);
    for (int i = 0; i < flips; ++i) damaged[random() % damaged.size()] ^= char(1 << random() % 8);
    try {
      for (const auto& [name, tensor] : parse_safetensors(damaged).tensors) {
        std::uint64_t count = 1;
        for (std::int64_t size : tensor.shape) count *= std::uint64_t(size);
        EXPECT_EQ(count, tensor.count()) << name;
      }
    } catch (const Error&) {  // one of ours is the other right answer
    }
  }
}

TEST(Safetensors, files_are_replaced_whole_or_not_at_all) {
  const Folder folder;
  const auto path = folder / "model.safetensors";
  write_safetensors(path, example());
  EXPECT_EQ(read_safetensors(path).tensors.size(), example().tensors.size());
  EXPECT_EQ(folder.files(), 1u);

  // A full disk, played by a limit on the size of files.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit tiny{.rlim_cur = 16, .rlim_max = 16};
    setrlimit(RLIMIT_FSIZE, &tiny);
    try {
      write_safetensors(path, example());
    } catch (const Error& error) {
      _exit(std::string(error.what()).find("cannot write") == std::string::npos ? 2 : 0);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(folder.files(), 1u) << "a draft was left behind";
  EXPECT_EQ(read_safetensors(path).tensors.size(), example().tensors.size());
}

TEST(Safetensors, are_read_alike_by_a_reader_of_another_language) {
  const Folder folder;
  const auto path = folder / "model.safetensors";
  write_safetensors(path, example());
  const std::string command = "python3 " FATHOM_SOURCE_DIR "/tests/file/read_safetensors.py " + path.string();
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  const auto found = nlohmann::json::parse(pipe, nullptr, false);
  ASSERT_EQ(pclose(pipe), 0);
  const TensorFile expected = example();
  EXPECT_EQ(found.at("metadata").get<decltype(expected.metadata)>(), expected.metadata);
  EXPECT_EQ(found.at("tensors").size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    const auto& read = found.at("tensors").at(name);
    EXPECT_EQ(read.at("shape").get<Shape>(), tensor.shape) << name;
    if (tensor.type == DataType::boolean) {
      EXPECT_EQ(read.at("values").dump(), "[true,false,true]");
    } else {
      EXPECT_EQ(read.at("values").get<std::vector<double>>(), tensor.numbers<double>()) << name;
    }
  }
}

TEST(Safetensors, what_is_not_a_file_is_named) {
  const Folder folder;
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      read_safetensors(path);
    } catch (const Error& error) { return error.what(); }
    return "";
  };
  EXPECT_NE(message(folder / "none").find("there is no file"), std::string::npos);
  EXPECT_NE(message("/dev/zero").find("not a file"), std::string::npos);
  EXPECT_NE(message("/tmp").find("folder"), std::string::npos);
  EXPECT_THROW(write_safetensors(folder / "no/such/folder.safetensors", example()), Error);
}

}  // namespace
}  // namespace fathom
