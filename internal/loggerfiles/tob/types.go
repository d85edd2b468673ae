package tob

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// epoch is where the clocks of the loggers begin.
var epoch = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// dataType is how values of a column are stored.
type dataType struct {
	size int
	xsd  string
	text func(value []byte) string
}

var (
	little = binary.LittleEndian
	big    = binary.BigEndian
	ascii  = regexp.MustCompile(`^ASCII\((\d{1,4})\)$`)
)

// typeOf gives the data type that a header names.
func typeOf(name string) (dataType, error) {
	if known, ok := types[name]; ok {
		return known, nil
	}
	if match := ascii.FindStringSubmatch(name); match != nil {
		if size, _ := strconv.Atoi(match[1]); size > 0 {
			return dataType{size, "xsd:string", text}, nil
		}
	}
	return dataType{}, fmt.Errorf("the data type %.40q is not known", name)
}

// types are the data types with their byte order: those with B at the end, INT and UINT
// with their size, FP2 and NSec are big-endian, all others little-endian.
var types = map[string]dataType{
	"FP2":    {2, "xsd:float", fp2},
	"IEEE4":  {4, "xsd:float", ieee4(little)},
	"IEEE4L": {4, "xsd:float", ieee4(little)},
	"IEEE4B": {4, "xsd:float", ieee4(big)},
	"IEEE8":  {8, "xsd:double", ieee8(little)},
	"IEEE8L": {8, "xsd:double", ieee8(little)},
	"IEEE8B": {8, "xsd:double", ieee8(big)},

	"BYTE":   {1, "xsd:unsignedByte", func(b []byte) string { return unsigned(uint64(b[0])) }},
	"INT1":   {1, "xsd:byte", func(b []byte) string { return signed(int64(int8(b[0]))) }},
	"SHORT":  {2, "xsd:short", func(b []byte) string { return signed(int64(int16(little.Uint16(b)))) }},
	"USHORT": {2, "xsd:unsignedShort", func(b []byte) string { return unsigned(uint64(little.Uint16(b))) }},
	"INT2":   {2, "xsd:short", func(b []byte) string { return signed(int64(int16(big.Uint16(b)))) }},
	"UINT2":  {2, "xsd:unsignedShort", func(b []byte) string { return unsigned(uint64(big.Uint16(b))) }},
	"LONG":   {4, "xsd:int", func(b []byte) string { return signed(int64(int32(little.Uint32(b)))) }},
	"ULONG":  {4, "xsd:unsignedInt", func(b []byte) string { return unsigned(uint64(little.Uint32(b))) }},
	"INT4":   {4, "xsd:int", func(b []byte) string { return signed(int64(int32(big.Uint32(b)))) }},
	"UINT4":  {4, "xsd:unsignedInt", func(b []byte) string { return unsigned(uint64(big.Uint32(b))) }},

	"BOOL":  {1, "xsd:boolean", boolean},
	"BOOL2": {2, "xsd:boolean", boolean},
	"BOOL4": {4, "xsd:boolean", boolean},
	"BOOL8": {1, "xsd:unsignedByte", func(b []byte) string { return unsigned(uint64(b[0])) }}, // eight in a byte

	"SecNano": {8, "xsd:dateTime", moment(little)},
	"NSec":    {8, "xsd:dateTime", moment(big)},
	"ASCII":   {1, "xsd:string", text},
}

const (
	// largestFP2 is the largest magnitude before the decimal point is set.
	largestFP2 = 7999
	nan        = "NAN"
)

// fp2 reads two bytes, big-endian: a sign, two bits for the decimals, 13 for the
// magnitude.
func fp2(b []byte) string {
	word := big.Uint16(b)
	switch word {
	case 0x1FFF:
		return "INF"
	case 0x9FFF:
		return "-INF"
	}
	magnitude, decimals := int64(word&0x1FFF), int(word>>13&3)
	switch {
	case magnitude > largestFP2:
		return nan
	case magnitude == 0:
		return "0"
	}
	digits := fmt.Sprintf("%0*d", decimals+1, magnitude)
	sign := ""
	if word&0x8000 != 0 {
		sign = "-"
	}
	if decimals == 0 {
		return sign + digits
	}
	point := len(digits) - decimals
	return sign + digits[:point] + "." + digits[point:]
}

func ieee4(order binary.ByteOrder) func([]byte) string {
	return func(b []byte) string { return float(float64(math.Float32frombits(order.Uint32(b))), 32) }
}

func ieee8(order binary.ByteOrder) func([]byte) string {
	return func(b []byte) string { return float(math.Float64frombits(order.Uint64(b)), 64) }
}

// float writes the shortest text that means the number.
func float(value float64, bits int) string {
	switch {
	case math.IsNaN(value):
		return nan
	case math.IsInf(value, 1):
		return "INF"
	case math.IsInf(value, -1):
		return "-INF"
	}
	return strconv.FormatFloat(value, 'g', -1, bits)
}

func signed(value int64) string { return strconv.FormatInt(value, 10) }

func unsigned(value uint64) string { return strconv.FormatUint(value, 10) }

// boolean is false where all bytes are zero.
func boolean(b []byte) string {
	for _, part := range b {
		if part != 0 {
			return "true"
		}
	}
	return "false"
}

// moment reads seconds since 1990 and nanoseconds, by the logger's clock.
func moment(order binary.ByteOrder) func([]byte) string {
	return func(b []byte) string {
		at := epoch.Add(time.Duration(order.Uint32(b))*time.Second + time.Duration(order.Uint32(b[4:])))
		return at.Format("2006-01-02T15:04:05.999999999")
	}
}

// text ends at its first zero byte. Bytes beyond ASCII are Latin-1.
func text(b []byte) string {
	runes := make([]rune, 0, len(b))
	for _, char := range b {
		if char == 0 {
			break
		}
		runes = append(runes, rune(char))
	}
	return string(runes)
}
