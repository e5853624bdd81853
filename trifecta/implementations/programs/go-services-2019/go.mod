module trifecta/go-services-2019

go 1.26.0

require (
	github.com/lucas-clemente/quic-go v0.12.1
	golang.org/x/sys v0.47.0
)

require (
	github.com/cheekybits/genny v1.0.0 // indirect
	github.com/golang/protobuf v1.3.0 // indirect
	github.com/marten-seemann/qpack v0.1.0 // indirect
	github.com/marten-seemann/qtls v0.3.2 // indirect
	golang.org/x/crypto v0.0.0-20190228161510-8dd112bcdc25 // indirect
	golang.org/x/net v0.0.0-20190228165749-92fc7df08ae7 // indirect
	golang.org/x/text v0.3.0 // indirect
)
